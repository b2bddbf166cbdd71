"""Visits of reports in a real browser: what a page asked for, complained about and drew.

Chromium is the system's own, driven by Playwright; REDUSET_BROWSER names another.
"""

import os
import shutil

import numpy as np

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}

# elements that reach beyond the screen, but for those that move in a frame of their own
WIDER = """() => [...document.querySelectorAll("main *:not(.wide *, svg *, option)")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.outerHTML.slice(0, 80))"""


def installed():
    given = os.environ.get("REDUSET_BROWSER")
    return given or next(filter(None, map(shutil.which, BROWSERS)), None)


class Visit:
    """A page, what it asked for and what it complained about."""

    def __init__(self, browser, path, size="desktop", scheme="light"):
        width, height = SIZES[size]
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=width < 500)
        self.page = self.context.new_page()
        self.requests, self.complaints, self.dialogs = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.goto(path.as_uri())
        self.settle()

    def settle(self):
        """Wait for what was asked for to be on the screen: two frames, and what is drawn later."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.page.locator("main:not([aria-busy])").wait_for(timeout=9000)

    def turn(self, width):
        """Another width, and the pictures have followed: plotly takes its time."""
        self.page.set_viewport_size({"width": width, "height": self.page.viewport_size["height"]})
        for _ in range(100):
            self.page.wait_for_timeout(30)
            if not self.page.evaluate(WIDER):
                return

    def slide(self, step):
        self.page.evaluate(
            "(step) => { const s = document.getElementById('step'); s.value = step; s.dispatchEvent(new Event('input')); }", step
        )
        self.settle()

    def trace(self, figure, number, name):
        """Numbers of a trace, as plotly has them."""
        read = """([id, k, name]) => Array.from(document.getElementById(id).data[k][name],
            (each) => each.length ? Array.from(each) : each)"""
        return np.array(self.page.evaluate(read, [figure, number, name]), dtype=float)


def hovered(seen, figure, number):
    """Point at a marker of a trace; the label that appears."""
    marker = seen.page.locator(f"#{figure} .scatterlayer .trace").nth(number).locator(".point").first
    marker.scroll_into_view_if_needed()
    box = marker.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    seen.page.mouse.move(x + 1, y)
    seen.page.mouse.move(x, y)
    label = seen.page.locator(f"#{figure} .hoverlayer .hovertext").first
    label.wait_for(timeout=9000)
    return label.text_content()
