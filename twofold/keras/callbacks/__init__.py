"""`tf.keras.callbacks`: what happens at the ends of batches and epochs."""

from __future__ import annotations

from twofold._front.namespace import publish

from .averages import SwapEMAWeights
from .base import Callback, CallbackList, History, LambdaCallback, ProgbarLogger
from .files import BackupAndRestore, CSVLogger, ModelCheckpoint
from .monitors import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau, TerminateOnNaN
from .tensorboard import TensorBoard

__all__ = ["BackupAndRestore", "CSVLogger", "Callback", "CallbackList", "EarlyStopping", "History", "LambdaCallback",
           "LearningRateScheduler", "ModelCheckpoint", "ProgbarLogger", "ReduceLROnPlateau",
           "SwapEMAWeights", "TensorBoard", "TerminateOnNaN"]


publish(__name__)
