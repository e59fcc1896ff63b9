"""Print the digests of methods that changed since the kernels were compared with them; see `implemented_by_kernels`."""

from __future__ import annotations

from routelearn.policies import attention  # noqa: F401  # its classes record what kernels implement
from routelearn.policies.kernels.select import changed_digests

if __name__ == "__main__":
    for name, digest in changed_digests().items():
        print(f"{name}: {digest}")
