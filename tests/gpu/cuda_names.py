"""What `cuda.h` of NVIDIA's driver says, as far as the fake driver has it: signatures, error codes, attributes."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p

__all__ = ["ERRORS", "POINTER_ATTRIBUTES", "POOL_ATTRIBUTES", "SIGNATURES", "CudaError", "HostFunction",
           "KernelNodeParams", "device_attributes", "put"]

_P, _I, _U, _N, _Q = c_void_p, c_int, c_uint, c_size_t, c_uint64  # pointers and handles; the last: device addresses
HostFunction = ctypes.CFUNCTYPE(None, c_void_p)

# Every function gives a CUresult, an int. Pointers to what a function fills are plain pointers.
SIGNATURES: dict[str, tuple[type, ...]] = {
    "cuInit": (_U,), "cuDriverGetVersion": (_P,), "cuDeviceGetCount": (_P,), "cuDeviceGet": (_P, _I),
    "cuDeviceGetName": (_P, _I, _I), "cuDeviceGetAttribute": (_P, _I, _I), "cuDeviceTotalMem_v2": (_P, _I),
    "cuDeviceGetUuid_v2": (_P, _I), "cuDevicePrimaryCtxRetain": (_P, _I), "cuDevicePrimaryCtxRelease_v2": (_I,),
    "cuCtxSetCurrent": (_P,), "cuCtxGetCurrent": (_P,), "cuCtxSynchronize": (), "cuCtxEnablePeerAccess": (_P, _U),
    "cuDeviceCanAccessPeer": (_P, _I, _I),
    "cuMemGetInfo_v2": (_P, _P), "cuMemAlloc_v2": (_P, _N), "cuMemFree_v2": (_Q,), "cuMemAllocAsync": (_P, _N, _P),
    "cuMemFreeAsync": (_Q, _P), "cuDeviceGetDefaultMemPool": (_P, _I), "cuMemPoolSetAttribute": (_P, _I, _P),
    "cuMemPoolGetAttribute": (_P, _I, _P), "cuMemPoolTrimTo": (_P, _N), "cuMemHostAlloc": (_P, _N, _U),
    "cuMemFreeHost": (_P,), "cuPointerGetAttribute": (_P, _I, _Q),
    "cuMemcpyHtoD_v2": (_Q, _P, _N), "cuMemcpyDtoH_v2": (_P, _Q, _N), "cuMemcpyHtoDAsync_v2": (_Q, _P, _N, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _Q, _N, _P), "cuMemcpyDtoDAsync_v2": (_Q, _Q, _N, _P),
    "cuMemcpyPeerAsync": (_Q, _P, _Q, _P, _N, _P), "cuMemsetD8Async": (_Q, c_ubyte, _N, _P),
    "cuMemsetD32Async": (_Q, _U, _N, _P),
    "cuStreamCreate": (_P, _U), "cuStreamDestroy_v2": (_P,), "cuStreamSynchronize": (_P,), "cuStreamQuery": (_P,),
    "cuStreamWaitEvent": (_P, _P, _U), "cuStreamBeginCapture_v2": (_P, _I), "cuStreamEndCapture": (_P, _P),
    "cuStreamIsCapturing": (_P, _P), "cuEventCreate": (_P, _U), "cuEventDestroy_v2": (_P,), "cuEventRecord": (_P, _P),
    "cuEventSynchronize": (_P,), "cuEventQuery": (_P,), "cuEventElapsedTime": (_P, _P, _P),
    "cuLaunchHostFunc": (_P, _P, _P),
    "cuModuleLoadData": (_P, _P), "cuModuleLoadDataEx": (_P, _P, _U, _P, _P), "cuModuleUnload": (_P,),
    "cuModuleGetFunction": (_P, _P, c_char_p), "cuModuleGetGlobal_v2": (_P, _P, _P, c_char_p),
    "cuFuncGetAttribute": (_P, _I, _P), "cuFuncSetAttribute": (_P, _I, _I),
    "cuLaunchKernel": (_P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P),
    "cuLinkCreate_v2": (_U, _P, _P, _P), "cuLinkAddData_v2": (_P, _I, _P, _N, c_char_p, _U, _P, _P),
    "cuLinkComplete": (_P, _P, _P), "cuLinkDestroy": (_P,), "cuGetErrorName": (_I, _P), "cuGetErrorString": (_I, _P),
    "cuGraphInstantiateWithFlags": (_P, _P, c_uint64), "cuGraphLaunch": (_P, _P), "cuGraphExecDestroy": (_P,),
    "cuGraphDestroy": (_P,), "cuGraphGetNodes": (_P, _P, _P), "cuGraphExecKernelNodeSetParams_v2": (_P, _P, _P),
    "cuGraphKernelNodeGetParams_v2": (_P, _P),
}

ERRORS: dict[int, tuple[str, str]] = {
    0: ("CUDA_SUCCESS", "no error"),
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    3: ("CUDA_ERROR_NOT_INITIALIZED", "initialization error"),
    100: ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
    101: ("CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"),
    200: ("CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"),
    201: ("CUDA_ERROR_INVALID_CONTEXT", "invalid device context"),
    209: ("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"),
    217: ("CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"),
    218: ("CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    222: ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."),
    400: ("CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"),
    401: ("CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"),
    500: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    600: ("CUDA_ERROR_NOT_READY", "device not ready"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    701: ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"),
    702: ("CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"),
    704: ("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"),
    715: ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"),
    716: ("CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"),
    719: ("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
    800: ("CUDA_ERROR_NOT_PERMITTED", "operation not permitted"),
    801: ("CUDA_ERROR_NOT_SUPPORTED", "operation not supported"),
    900: ("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"),
    901: ("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"),
    902: ("CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"),
    903: ("CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"),
    904: ("CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"),
    905: ("CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"),
    906: ("CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing "
          "blocking stream"),
    907: ("CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"),
    999: ("CUDA_ERROR_UNKNOWN", "unknown error"),
}

_SHARED_PER_BLOCK = {(7, 5): 65536, (8, 0): 166912, (8, 6): 101376, (8, 7): 166912, (8, 9): 101376, (9, 0): 232448,
                     (10, 0): 232448, (12, 0): 101376}  # what a kernel may ask for


class CudaError(Exception):
    """What a function of the driver gives instead of success."""

    def __init__(self, code: int) -> None:
        super().__init__(ERRORS[code][0])
        self.code = code


class KernelNodeParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [("func", c_void_p), *[(f"{what}Dim{axis}", c_uint) for what in ("grid", "block") for axis in "XYZ"],
                ("sharedMemBytes", c_uint), ("kernelParams", c_void_p), ("extra", c_void_p), ("kern", c_void_p),
                ("ctx", c_void_p)]


def device_attributes(architecture: tuple[int, int]) -> dict[int, int]:
    """What `cuDeviceGetAttribute` says of a device, by the number of the attribute."""
    shared = _SHARED_PER_BLOCK.get(architecture, 101376)
    return {1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152, 9: 65536, 10: 32, 12: 65536,
            13: 1_500_000, 15: 1, 16: 8, 18: 0, 19: 1, 31: 1, 33: 1, 34: 0, 36: 2_000_000, 37: 5120,
            38: 1 << 25, 39: 1024 if architecture < (8, 0) else 2048, 40: 2, 41: 1, 50: 0, 75: architecture[0],
            76: architecture[1], 81: shared + 1024, 82: 65536, 88: 0, 89: 0, 97: shared, 100: 0,
            106: 16 if architecture < (8, 0) else 32, 111: 0 if architecture < (8, 0) else 1024, 115: 1}


def put(address: int | None, kind: type, value: int | float) -> None:
    """Writes a result where a pointer of the caller points.

    Raises:
        CudaError: the pointer is null.
    """
    if not address:
        raise CudaError(1)
    kind.from_address(address).value = value  # type: ignore[attr-defined]


POOL_ATTRIBUTES = {1: c_int, 2: c_int, 3: c_int, **dict.fromkeys(range(4, 9), c_uint64)}
POINTER_ATTRIBUTES = {1: c_void_p, 2: c_uint, 3: c_uint64, 4: c_void_p, 8: c_uint, 9: c_int, 11: c_uint64, 12: c_size_t}
