"""An application with an Elasticsearch index, one entry for each document."""

import os

from elasticsearch import Elasticsearch

INDEX = "help-2026-01"
client = Elasticsearch(os.environ["ELASTICSEARCH_URL"])
