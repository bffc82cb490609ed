"""Write a run with a LangChain retriever."""

from my_app import retriever  # yours, such as store.as_retriever(search_kwargs={"k": 20})

from ragcontract import RunWriter, load_golden

with RunWriter("current_run.jsonl") as run:
    for query in load_golden("golden.jsonl").values():
        found = retriever.invoke(query.query)
        hits = [{"doc_id": one.metadata["source"], "chunk_id": one.id} for one in found]
        run.write(query.id, hits)
