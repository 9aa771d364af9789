"""A headless Chromium, driven through the DevTools protocol over two pipes: no port, no driver to install."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_S = 40.0
"""On a machine that does other things too."""
# In a container a process of root has no sandbox of its own, and its /dev/shm is small.
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
)  # fmt: skip


def executable() -> str | None:
    """Of the browser that is installed; `None` where none is."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One process, and one page in it."""

    def __init__(self, program: str, profile: Path) -> None:
        (ours, theirs), (back, forth) = os.pipe(), os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4; out of the way of those numbers first.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (ours, forth)]
        for end in (ours, forth):
            os.close(end)
        command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        shell = f'exec "$0" "$@" 3<&{high[0]} 4>&{high[1]}'
        with (profile.parent / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["/bin/bash", "-c", shell, *command], pass_fds=high, stdout=log, stderr=log, start_new_session=True
            )
        for end in high:
            os.close(end)
        self._commands, self._answers = theirs, back
        self._buffer, self._last, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """End the process, and only it."""
        self._session = ""
        try:
            self.send("Browser.close")
            self._process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._commands)
            os.close(self._answers)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command. `RuntimeError` for one that fails; events that come meanwhile are kept."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                found: dict[str, Any] = answer["result"]
                return found
        raise RuntimeError(f"{method}: the browser said nothing for {PATIENCE_S:.0f} s")

    def open(self, url: str) -> None:
        """Load a page, and forget what was said on the one before."""
        self.events.clear()
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def open_afresh(self, url: str) -> None:
        """Load a page that remembers nothing. Another process may show it, which hears of cleared storage late."""
        self.open(url)
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            self.run("localStorage.clear()")
            self.open(url)
            if self.run("localStorage.length === 0"):
                return
        raise RuntimeError(f"{url} still has what was stored")

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited. `RuntimeError` with what it threw."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait for a condition. `RuntimeError` when it does not come true."""
        ends = time.monotonic() + PATIENCE_S
        while not self._holds(condition):
            if time.monotonic() > ends:
                raise RuntimeError(f"never true: {condition}; {self.complaints()}")
            time.sleep(0.02)

    def _holds(self, condition: str) -> bool:
        """Return whether a condition is true; during a navigation it is not."""
        try:
            return bool(self.run(condition))
        except RuntimeError as error:
            if "navigated or closed" in str(error):
                return False
            raise

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        """The window's inner size, in CSS pixels."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def prefer(self, scheme: str) -> None:
        """What the system says of colours: `"light"` or `"dark"`."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, refusals of the page's policy, dialogs."""
        return list(self._complaints())

    def requests(self) -> list[str]:
        """Addresses that were asked for."""
        return [event["params"]["request"]["url"] for event in self._of("Network.requestWillBeSent")]

    def _complaints(self) -> Iterator[str]:
        for event in self._of("Runtime.exceptionThrown"):
            yield str(event["params"]["exceptionDetails"])[:500]
        for event in self._of("Runtime.consoleAPICalled", lambda params: params["type"] in ("error", "warning")):
            yield str(event["params"]["args"])[:500]
        for event in self._of("Log.entryAdded", lambda params: params["entry"]["level"] in ("error", "warning")):
            yield str(event["params"]["entry"])[:500]
        for event in self._of("Page.javascriptDialogOpening"):
            yield str(event["params"])[:500]

    def _of(self, method: str, wanted: Callable[[dict[str, Any]], bool] = lambda _params: True) -> list[dict[str, Any]]:
        return [event for event in self.events if event["method"] == method and wanted(event["params"])]

    def _messages(self) -> Iterator[dict[str, Any]]:
        """Until nothing comes for too long; events are kept on the way."""
        ends = time.monotonic() + PATIENCE_S
        while True:
            while b"\0" in self._buffer:
                line, _, self._buffer = self._buffer.partition(b"\0")
                message = json.loads(line)
                if "method" in message:
                    self.events.append(message)
                yield message
            left = ends - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                return
            data = os.read(self._answers, 1 << 20)
            if not data:
                return
            self._buffer += data
