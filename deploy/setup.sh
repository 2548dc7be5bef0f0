#!/bin/sh
# Builds .venv from the lock file and fetches the JVM parts. Run by make; a second run finds everything in place.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

step() { printf '\n== %s\n' "$1"; }

find_python() {
    for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

python=$(find_python)
[ -n "$python" ] || fail "Python 3.11 or newer is needed and none was found: install it, e.g. 'sudo apt-get install python3 python3-venv' or 'brew install python', or name it with PYTHON=/path/to/python3."
"$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python cannot make virtual environments: 'sudo apt-get install python3-venv' adds that."

java=${JAVA_HOME:+$JAVA_HOME/bin/}java
version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1) || version=
[ -n "$version" ] || fail "Java 17 or newer is needed and none was found: 'sudo apt-get install openjdk-17-jre-headless' or 'brew install openjdk@17' installs it."
[ "$version" -ge 17 ] || fail "Java $version is too old, 17 or newer is needed: 'sudo apt-get install openjdk-17-jre-headless' or 'brew install openjdk@17' installs it, JAVA_HOME selects it."

[ -x .venv/bin/python ] || {
    step "Creating .venv with $("$python" --version)"
    "$python" -m venv .venv
}

step "Installing the locked dependencies (about a minute; pyspark alone is 450 MB)"
.venv/bin/python -m pip install --disable-pip-version-check --require-hashes --quiet --progress-bar on -r requirements.lock &
pip=$!
trap 'kill $pip 2>/dev/null || true' INT TERM
# pip says nothing while it builds pyspark's wheel: show that it lives.
while kill -0 $pip 2>/dev/null; do
    printf '.'
    sleep 2
done
echo
wait $pip || fail "The locked dependencies could not be installed; the lines above say which. Is the package index reachable?"
.venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .

step "Fetching the JVM parts (Spark's Kafka connector and a Kafka broker, 60 MB, once per user)"
.venv/bin/python -m streaming.jvm

touch .venv/.ready
step "Ready"
