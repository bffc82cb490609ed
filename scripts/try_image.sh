#!/usr/bin/env bash
# Runs an image of the action as a runner does, on three contracts: one that holds must exit 0, a broken one 1, a run
# that cannot be read 2.
#
#   scripts/try_image.sh IMAGE
set -euo pipefail
image=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo '{"id": "q", "query": "?", "relevant_doc_ids": ["a"]}' >"$folder/golden.jsonl"

try() {
  echo "$2" >"$folder/current_run.jsonl"
  code=0
  docker run --rm --network none --volume "$folder:/github/workspace" --workdir /github/workspace \
    --env GITHUB_ACTIONS=true --env GITHUB_WORKSPACE=/github/workspace --env INPUT_COMMENT=never \
    "$image" >"$folder/log" 2>&1 || code=$?
  sed 's/^/  /' "$folder/log"
  if [ "$code" -ne "$1" ]; then
    echo "::error::exit code $code, expected $1"
    exit 1
  fi
}

try 0 '{"query_id": "q", "results": [{"doc_id": "a"}]}'
try 1 '{"query_id": "q", "results": [{"doc_id": "b"}]}'
try 2 '{"query_id": "q", "resul'
