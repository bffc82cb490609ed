"""Writing runs: for programs that ask a retriever the golden questions."""
