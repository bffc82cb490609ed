"""Write a run with a LlamaIndex retriever."""

from my_app import retriever  # yours, such as index.as_retriever(similarity_top_k=20)

from ragcontract import RunWriter, load_golden

with RunWriter("current_run.jsonl") as run:
    for query in load_golden("golden.jsonl").values():
        found = retriever.retrieve(query.query)
        hits = [{"doc_id": one.node.ref_doc_id, "chunk_id": one.node_id} for one in found]
        run.write(query.id, hits)
