"""The stand-in for a judge's server as a command, as the documents use it."""

import subprocess
import sys

import requests

from tests.runner import ROOT


def test_it_says_where_it_is_and_answers_there() -> None:
    command = [sys.executable, "-m", "tests.judge_server", "--port", "0", "--character", "think"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[0]
        asked = {"messages": [{"role": "user", "content": '{"x_claims": [], "x_contexts": []}'}]}
        found = requests.post(f"{address}/chat/completions", json=asked, timeout=10).json()
        assert found["choices"][0]["message"]["content"].startswith("<think>")
    finally:
        server.kill()
        server.communicate()
