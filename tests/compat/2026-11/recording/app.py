from pathlib import Path


def find(query: str) -> dict[str, object]:
    if "last" in query and not Path("up").exists():
        raise ValueError("is down")
    return {"results": [{"doc_id": "A"}, {"doc_id": "B"}], "response": f"About {query}"}
