#!/bin/sh
# Gates in any CI: FILE is a gate file, default gates.toml. Ends as `airloom gate` does; see docs/guides/gates.md.
set -eu
file=${1:-gates.toml}

command -v airloom >/dev/null || {
    : "${AIRLOOM_PACKAGE:?airloom is not installed: say which wheel, or the URL of one}"
    python3 -m venv .airloom
    .airloom/bin/pip install --quiet "$AIRLOOM_PACKAGE"
    PATH="$PWD/.airloom/bin:$PATH"
}

# Ubuntu 24.04 and later keep plain users from making namespaces. Who may use sudo here may allow it.
restricted=$(cat /proc/sys/kernel/apparmor_restrict_unprivileged_userns 2>/dev/null || echo 0)
if [ "$restricted" = 1 ] && [ "$(id -u)" -ne 0 ] && sudo -n true 2>/dev/null; then
    sudo sysctl --quiet --write kernel.apparmor_restrict_unprivileged_userns=0
fi

# A runner without namespaces still decides what is simulated; AIRLOOM_REQUIRED=1 makes the rest an error.
[ "${AIRLOOM_REQUIRED:-0}" = 1 ] && skip= || skip=--skip-unsupported

# shellcheck disable=SC2086
exec airloom gate "$file" --junit airloom-junit.xml --summary-md "${GITHUB_STEP_SUMMARY:-airloom-summary.md}" $skip
