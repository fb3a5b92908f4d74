"""`tf.autodiff`: gradients in reverse mode and derivatives in forward mode."""

from twofold._front.namespace import publish
from twofold.eager.forward import ForwardAccumulator
from twofold.eager.tape import GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]

publish(__name__)
