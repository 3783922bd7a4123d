"""Makes the component."""

import sys

from componentize_py import script

sys.argv = ["componentize-py", "-d", "vendor/wit", "-w", "prune-policy", "componentize", "policy", "-o", "{{name}}.wasm"]
script()
