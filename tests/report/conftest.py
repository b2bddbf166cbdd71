"""The browser in which reports are opened; where there is none its tests are skipped, but never in CI."""

import os

import pytest

from report_visits import installed


@pytest.fixture(scope="module")
def browser():
    path = installed()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium: in CI reports must be opened; run scripts/browser.sh as root, or set REDUSET_BROWSER")
        pytest.skip("no Chromium: run scripts/browser.sh as root, or set REDUSET_BROWSER")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # without a graphics card, or one made up in software, which takes longer than none
        args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        started = driver.chromium.launch(executable_path=path, args=args)
        yield started
        started.close()
