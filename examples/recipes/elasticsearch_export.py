"""Write a run with an Elasticsearch index."""

from my_app import INDEX, client  # yours

from ragcontract import RunWriter, load_golden

with RunWriter("current_run.jsonl", index_version=INDEX) as run:
    for query in load_golden("golden.jsonl").values():
        ask = {"match": {"text": query.query}}
        found = client.search(index=INDEX, query=ask, size=20, source=False)
        hits = [{"doc_id": hit["_id"], "score": hit["_score"]} for hit in found["hits"]["hits"]]
        run.write(query.id, hits, latency_ms=found["took"])
