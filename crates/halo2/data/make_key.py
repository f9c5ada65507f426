#!/usr/bin/env python3
"""Makes orchard-post-nu6-3.key beside this file: the verifying key of Orchard's circuit.

    python3 make_key.py circuit_description_post_nu6_3

The argument is the file of the `orchard` crate, version 0.16.0, src/circuit_data (MIT or Apache-2.0): what
`{:#?}` prints of the pinned key. The key is the same as `{:?}` prints it, on one line.
"""

import pathlib
import re
import sys

text = " ".join(line.strip() for line in pathlib.Path(sys.argv[1]).read_text().split("\n")).strip()
text = re.sub(r", ([\]})])", r" \1", text)
text = re.sub(r"([\[(]) ", r"\1", text)
text = re.sub(r" ([\])])", r"\1", text)
(pathlib.Path(__file__).parent / "orchard-post-nu6-3.key").write_text(text)
print(f"{len(text)} bytes")
