"""Chromium without a window, driven by its own protocol over a pipe: what a page does, says and asks for."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from fcntl import F_DUPFD, fcntl
from pathlib import Path

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
    "--hide-scrollbars",
)
PATIENCE = 60.0
"""Seconds to wait for an answer."""


class Browser:
    """One page in one browser."""

    def __init__(self, folder: Path) -> None:
        self.downloads = folder / "downloads"
        self.downloads.mkdir()
        (ask, self._ask), (self._hear, hear) = os.pipe(), os.pipe()
        # The browser reads from 3 and writes to 4; the pipes stand elsewhere until then.
        ends = [fcntl(end, F_DUPFD, 10) for end in (ask, hear)]
        command = ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash", CHROMIUM, *FLAGS]
        command += [f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self._process = subprocess.Popen(command, pass_fds=ends, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (ask, hear, *ends):
            os.close(end)
        self._number, self._heard, self.events, self._session = 0, b"", [], None
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.tell(f"{domain}.enable")
        self._session, session = None, self._session
        self.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads), eventsEnabled=True)
        self._session = session

    def tell(self, method: str, **params: object) -> dict:
        """One command, and its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._ask, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._number:
                assert "error" not in said, said
                return said["result"]
            if "method" in said:
                self.events.append(said)

    def _next(self) -> dict:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._heard:
            ready, _, _ = select.select([self._hear], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._hear, 1 << 20)
            assert part, "the browser has ended"
            self._heard += part
        message, _, self._heard = self._heard.partition(b"\0")
        return json.loads(message)

    def wait(self, method: str) -> dict:
        """The first event of that kind since the last page was opened."""
        while True:
            for event in self.events:
                if event["method"] == method:
                    return event["params"]
            said = self._next()
            if "method" in said:
                self.events.append(said)

    def open(self, page: Path, width: int = 1200, height: int = 900, scheme: str = "light", touch: bool = False) -> float:
        """Load a page, and the seconds until it was there with its script run."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        began = time.perf_counter()
        self.tell("Page.navigate", url=page.resolve().as_uri())
        self.wait("Page.loadEventFired")
        # One answer of the page itself: its script has run, its first layout is done.
        self.run("document.body.offsetHeight")
        return time.perf_counter() - began

    def run(self, script: str) -> object:
        """The value of an expression in the page."""
        got = self.tell("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def click(self, selector: str) -> None:
        """A real click in the middle of an element."""
        x, y = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, x: float, y: float) -> None:
        """Move the pointer there."""
        self.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        """A key that writes nothing."""
        for kind in ("keyDown", "keyUp"):
            self.tell("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def middle(self, selector: str) -> tuple[float, float]:
        """Where an element is, once it is in view."""
        found = self.run(
            f"(() => {{ const it = document.querySelector({json.dumps(selector)}); it.scrollIntoView({{block: 'center'}});"
            "const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        return tuple(found)

    def type(self, selector: str, text: str) -> None:
        """Write into a field."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.tell("Input.insertText", text=text)

    def complaints(self) -> list[str]:
        """What the page wrote to the console, what went wrong in its script, and what its policy forbade."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event["method"] in kinds]

    def requests(self) -> list[str]:
        """The addresses that were asked for, the page's own apart."""
        sent = [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in sent[1:] if not url.startswith(("blob:", "data:"))]

    def picture(self, file: Path) -> None:
        """The whole page as a PNG."""
        got = self.tell("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(got["data"]))

    def close(self) -> None:
        """End it."""
        self._session = None
        try:
            self.tell("Browser.close")
            self._process.wait(20)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            os.close(self._ask)
            os.close(self._hear)
