"""A service over HTTP that answers every question after some time: ``python slow_service.py SECONDS``; prints its port.

A program of its own, of nothing but the standard library, so that it costs as little as possible beside what it is
asked by.
"""

import asyncio
import json
import sys

ANSWER = json.dumps(
    {
        "results": [
            {"doc_id": f"document-{number}", "score": 1 - number / 20, "text": "Returns. " * 20} for number in range(10)
        ]
    }
).encode()
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ANSWER) + ANSWER


async def main(seconds: float) -> None:
    """Serve until the process is ended."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = [line.partition(b":") for line in head.lower().split(b"\r\n")]
                await reader.readexactly(sum(int(value) for name, _, value in fields if name == b"content-length"))
                await asyncio.sleep(seconds)
                writer.write(RESPONSE)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):  # the other side has left
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
