"""Writes the models of PyTorch that the tests import: small ones of the common kinds, by both of its exporters.

    python tests/onnx_files/data/make_torch.py      in an environment with torch, onnx and onnxscript
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions beside a shorter way."""

    def __init__(self, have: int, want: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(have, want, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(want)
        self.second = nn.Conv2d(want, want, 3, 1, 1, bias=False)
        self.short = nn.Conv2d(have, want, 1, stride)

    def forward(self, x: Any) -> Any:
        """The block's result."""
        return torch.relu(self.second(torch.relu(self.norm(self.first(x)))) + self.short(x))


class Encoder(nn.Module):
    """A text encoder with a classifier of the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        """Scores."""
        return self.out(self.layers(self.words(x)).mean(1))


class Recurrent(nn.Module):
    """An LSTM both ways, then a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(10, 6, batch_first=True)
        self.out = nn.Linear(6, 2)

    def forward(self, x: Any) -> Any:
        """Scores of the last step."""
        return self.out(self.gru(self.lstm(x)[0])[0][:, -1])


class Upsampling(nn.Module):
    """Convolutions down and up again."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.norm, self.up, self.out = nn.GroupNorm(2, 8), nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        """An image."""
        x = torch.relu(self.first(x))
        inner = nn.functional.gelu(self.norm(self.second(nn.functional.max_pool2d(x, 2))))
        wide = nn.functional.interpolate(inner, scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(torch.cat([self.up(inner), x + wide[:, :4]], 1))


def stripped(path: Path) -> None:
    """Take out of a file what it says of the lines that it was made of."""
    model = onnx.load(path)
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info, *model.graph.initializer):
        del value.metadata_props[:]
    del model.graph.metadata_props[:], model.metadata_props[:], model.graph.value_info[:]
    path.write_bytes(model.SerializeToString())


def main() -> None:
    """Write the files."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 7, 2, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Block(4, 6, 2),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))
    kinds = {"net": (net, torch.randn(2, 3, 24, 24)), "encoder": (Encoder(), torch.randint(0, 20, (2, 7))),
             "recurrent": (Recurrent(), torch.randn(2, 6, 4)), "upsampling": (Upsampling(), torch.randn(2, 2, 8, 8))}
    for name, (module, example) in kinds.items():
        module.eval()
        by_script, by_program = (Path(__file__).parent / f"torch_{name}{end}.onnx" for end in ("_script", ""))
        torch.onnx.export(module, (example,), by_script, input_names=["x"], dynamo=False,
                          dynamic_axes={"x": {0: "n"}})
        torch.onnx.export(module, (example,), by_program, input_names=["x"], dynamo=True, external_data=False,
                          dynamic_shapes=({0: torch.export.Dim("n")},))
        stripped(by_script)
        stripped(by_program)


if __name__ == "__main__":
    main()
