#!/bin/sh
# Makes sure that there is a Chromium for the tests that open reports. Does nothing where one is found; installs the system's own where
# the package manager is apt and we may; says so and goes on where we may not, since the tests then skip, or, in CI, fail.
set -eu

for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done
if [ -n "${REDUSET_BROWSER:-}" ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "no Chromium found, and no apt-get to install one: install Chromium, or set REDUSET_BROWSER to a browser's path" >&2
    exit 0
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
        echo "no Chromium found, and only root may install it: apt-get install chromium" >&2
        exit 0
    fi
    as_root="sudo -n"
fi
echo "installing Chromium, for the tests that open reports"
if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1; then
    $as_root apt-get update >/dev/null || true
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null ||
        echo "Chromium could not be installed" >&2
fi
