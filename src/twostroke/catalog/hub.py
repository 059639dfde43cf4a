"""`python -m twostroke.catalog.hub REPOSITORY FILE FOLDER`: one file of the model hub into a folder.

A program of its own so that its caller can watch and end it.  It says in one line why it failed, and asks once
whether the hub answers at all before it hands over to the hub's own client, which is slow to give up.
"""

from __future__ import annotations

import sys
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

PROBE_S = 5.0


def main(repository: str, file: str, folder: str) -> str | None:
    """The reason why nothing was downloaded, None where it was."""
    from huggingface_hub import constants, hf_hub_download

    if reason := unreachable(constants.ENDPOINT):
        return f"{constants.ENDPOINT} is not reached: {reason}"
    try:
        hf_hub_download(repository, file, local_dir=folder, etag_timeout=PROBE_S)
    except Exception as error:  # the client's own family of errors is wide, and each is simply a reason here
        return " ".join(str(error).split())[:300] or type(error).__name__
    return None


def unreachable(endpoint: str) -> str | None:
    """Why `endpoint` cannot be reached; None where it answers anything."""
    try:
        urlopen(Request(endpoint, method="HEAD"), timeout=PROBE_S).close()
    except HTTPError:
        return None
    except URLError as error:
        return str(error.reason)
    except OSError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
