"""Write a run with a Chroma collection."""

from my_app import collection  # yours, with its embedding function

from ragcontract import RunWriter, load_golden

with RunWriter("current_run.jsonl") as run:
    for query in load_golden("golden.jsonl").values():
        found = collection.query(query_texts=[query.query], n_results=20)
        chunks = zip(found["ids"][0], found["metadatas"][0], strict=True)
        run.write(query.id, [{"doc_id": of["source"], "chunk_id": chunk} for chunk, of in chunks])
