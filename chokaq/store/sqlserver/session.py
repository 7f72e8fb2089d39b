"""A session: every operation over one connection."""

from chokaq.store.sqlserver.circuits import CircuitOperations
from chokaq.store.sqlserver.claims import ClaimOperations
from chokaq.store.sqlserver.client import ClientOperations
from chokaq.store.sqlserver.looking import LookingOperations
from chokaq.store.sqlserver.maintenance import MaintenanceOperations
from chokaq.store.sqlserver.operators import OperatorOperations
from chokaq.store.sqlserver.probing import ProbingOperations
from chokaq.store.sqlserver.repairs import RepairOperations
from chokaq.store.sqlserver.scaling import ScalingOperations
from chokaq.store.sqlserver.worker import WorkerOperations


class SqlServerSession(
    ClientOperations,
    WorkerOperations,
    MaintenanceOperations,
    OperatorOperations,
    RepairOperations,
    CircuitOperations,
    ClaimOperations,
    LookingOperations,
    ProbingOperations,
    ScalingOperations,
):
    """Implements `chokaq.store.protocol.Session`; one thread at a time. Every procedure goes through `_call`."""

    def close(self) -> None:
        """Close the connection; harmless when already closed or broken."""
        self._link.close()
