"""A headless Chromium of Debian's packages, which opens pages from files: what it shows, logs, and asks for."""
import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Browser:
    """An open browser.

    Parameters:
        driver: of selenium.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, *, dark: bool = False, size: tuple[int, int] = (1280, 900)) -> None:
        """Open a page, and wait until all its pictures are drawn."""
        from selenium.webdriver.support.wait import WebDriverWait

        width, height = size
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.get(path.resolve().as_uri())
        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(
            "return document.documentElement.dataset.drawn"))

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a script returns."""
        return self.driver.execute_script(script, *arguments)

    def errors(self) -> list[str]:
        """What the console was told since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """Addresses that were asked for since it was asked last."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def click(self, x: float, y: float) -> None:
        """Move the pointer over a place of the window, and press."""
        from selenium.webdriver.common.actions.action_builder import ActionBuilder

        actions = ActionBuilder(self.driver)
        actions.pointer_action.move_to_location(int(x), int(y)).pause(0.3).click()
        actions.perform()

    def hover(self, x: float, y: float) -> None:
        """Move the pointer over a place of the window."""
        from selenium.webdriver.common.actions.action_builder import ActionBuilder

        actions = ActionBuilder(self.driver)
        actions.pointer_action.move_to_location(int(x) - 3, int(y)).move_to_location(int(x), int(y))
        actions.perform()

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        data = self.driver.execute_cdp_cmd("Page.captureScreenshot", {
            "captureBeyondViewport": True, "clip": {**size, "scale": 1}})["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser; the test is skipped where Chromium is missing."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs chromium and chromedriver: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--use-angle=swiftshader", "--enable-unsafe-swiftshader"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield Browser(opened)
    finally:
        opened.quit()
