"""Writes the models of scikit-learn that the tests import.

    python tests/onnx_files/data/make_sklearn.py      in an environment with scikit-learn and skl2onnx
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def main() -> None:
    """Write the files."""
    x = np.random.default_rng(2).standard_normal((60, 4)).astype(np.float32)
    number, kind = x[:, 0] * 2 - x[:, 1], (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
    fitted = {
        "linear": LinearRegression().fit(x, number),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()).fit(x, kind),
        "two_classes": LogisticRegression().fit(x, np.array(["no", "yes"])[(number > 0).astype(int)]),
        "forest": RandomForestClassifier(4, max_depth=3, random_state=0).fit(x, kind),
        "forest_of_numbers": RandomForestRegressor(3, max_depth=4, random_state=0).fit(x, number),
        "boosted": GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0).fit(x, number > 0)}
    for name, model in fitted.items():
        options = {"zipmap": False} if hasattr(model, "predict_proba") else None
        file = to_onnx(model, x[:1], options=options, target_opset={"": 17, "ai.onnx.ml": 3})
        (Path(__file__).parent / f"sklearn_{name}.onnx").write_bytes(file.SerializeToString())


if __name__ == "__main__":
    main()
