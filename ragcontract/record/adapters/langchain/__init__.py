"""Objects of LangChain and LangGraph as targets."""
