"""LangChain, LlamaIndex and Chroma themselves, the oldest versions that are supported and the newest."""
