"""schemathesis plays every call of the OpenAPI document, with good bodies and with bad ones."""

import subprocess
import sys


def test_no_call_fails_or_answers_what_is_not_documented(running, tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{running.url}/openapi.json"),
            *("--phases", "examples,coverage,fuzzing", "--max-examples", "25", "--seed", "1"),
            # What fits the schema may still be refused: two arms of different lengths, say.
            *("--exclude-checks", "positive_data_acceptance"),
            *("--warnings", "off", "--no-color"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "19 selected / 19 total" in done.stdout
