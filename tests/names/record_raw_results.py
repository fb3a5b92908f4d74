"""Records what raw ops give: `python record_raw_results.py`, where TensorFlow is, for the calls of `raw_cases.py`."""

import json
import pathlib

import raw_cases
import tensorflow as tf


def main():
    kept = {name: raw_cases.run(tf, name, arguments) for name, arguments in raw_cases.cases(tf).items()}
    kept |= {name: raw_cases.updated(tf, name) for name in raw_cases.UPDATES}
    kept |= {name: raw_cases.drawn(tf, name) for name in raw_cases.FROM_STATES}
    kept = {name: [[a.dtype.name, list(a.shape), [x.decode() for x in a.ravel().tolist()] if a.dtype == object else
                    a.tobytes().hex()] for a in arrays] for name, arrays in kept.items()}
    lines = ",\n".join(f"{json.dumps(n)}: {json.dumps(value, separators=(',', ':'))}" for n, value in kept.items())
    pathlib.Path(__file__).with_name("raw_results.json").write_text("{\n" + lines + "\n}\n")
    print(len(kept))


if __name__ == "__main__":
    main()
