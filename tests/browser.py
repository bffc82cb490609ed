"""Chromium without a window, driven over its own debugging pipe: no driver, no port, no network.

The protocol is JSON ended by a null byte, on the descriptors 3 and 4 of the browser.
"""

import fcntl
import json
import os
import subprocess
import tempfile
import time
from base64 import b64decode
from pathlib import Path
from typing import Any

from tests.needs import NEEDS, program

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
)
QUIET = ("--disable-sync", "--disable-background-networking", "--disable-component-update", "--disable-extensions")
ABOVE = 10  # so that no end of a pipe is 3 or 4 already
PATIENCE = 60  # seconds until a browser that says nothing is given up

KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Home": (36, ""),
    "ArrowUp": (38, ""),
    "ArrowDown": (40, ""),
    "Space": (32, " "),
}


class Browser:
    """One Chromium with one page. ``complaints`` holds errors of scripts, what was logged, and what CSP refused."""

    def __init__(self) -> None:
        path = program("chromium")
        if path is None:
            raise FileNotFoundError(NEEDS["chromium"].why)
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, ABOVE) for end in (theirs_in, theirs_out)]
        command = [path, *FLAGS, *QUIET, "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}', "bash", *command, "about:blank"],
            pass_fds=theirs,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_in, theirs_out, *theirs):
            os.close(end)
        self._out = os.fdopen(ours_out, "wb", buffering=0)
        self._in = os.fdopen(ours_in, "rb")
        self._left = b""
        self._number = 0
        self._session = ""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")
        self.resize(1200, 900)

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait()
        self._out.close()
        self._in.close()
        self._profile.cleanup()

    def send(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol and return what it answers; what happens meanwhile is noted."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            chunk = os.read(self._in.fileno(), 1 << 20)
            if not chunk:
                raise RuntimeError("the browser ended")
            self._left += chunk
        line, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method", ""), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method in {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}:
            self.complaints.append(json.dumps(params))
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {params['message']}")
            raise AssertionError(self.complaints)

    def open(self, file: Path, fragment: str = "") -> None:
        """Load a file and wait until it is there; what was noted of the page before is forgotten."""
        self.send("Page.navigate", url="about:blank")
        self.complaints.clear()
        self.requests.clear()
        self.send("Page.navigate", url=file.as_uri() + fragment)
        self.wait("location.protocol === 'file:' && document.readyState === 'complete'")

    def js(self, expression: str) -> Any:
        """Evaluate an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.js(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def resize(self, width: int, height: int) -> None:
        """Make the window as large as that."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, kind: str = "", scheme: str = "light") -> None:
        """Show the page as on paper (``print``), or in a dark or light room."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=kind, features=features)

    def scripts(self, *, on: bool) -> None:
        """Turn JavaScript on or off for pages that are opened from now on."""
        self.send("Emulation.setScriptExecutionDisabled", value=not on)

    def press(self, *keys: str) -> None:
        """Press keys one after the other; ``Shift+Tab`` is one."""
        for name in keys:
            key = name.removeprefix("Shift+")
            code, text = KEYS[key]
            event = {
                "key": " " if key == "Space" else key,
                "code": key,
                "windowsVirtualKeyCode": code,
                "modifiers": 8 if key != name else 0,
            }
            self.send("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {}))
            self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Type text where the focus is."""
        for char in text:
            self.send("Input.dispatchKeyEvent", type="char", text=char)

    def accessible(self) -> list[tuple[str, str]]:
        """Return role and name of everything that a screen reader is given."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")
        ]

    def picture(self, *, whole: bool = True) -> bytes:
        """Take a picture of the page, PNG."""
        return b64decode(
            self.send("Page.captureScreenshot", captureBeyondViewport=whole, **self._size(whole=whole))["data"]
        )

    def _size(self, *, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}}

    def paper(self) -> bytes:
        """Print the page, PDF."""
        return b64decode(self.send("Page.printToPDF", printBackground=True)["data"])
