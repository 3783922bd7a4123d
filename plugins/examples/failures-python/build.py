"""Makes the component."""

import sys

from componentize_py import script

sys.argv = ["componentize-py", "-d", "../../../wit", "-w", "prune-policy", "componentize", "policy"]
sys.argv += ["-o", "failures-python.wasm"]
script()
