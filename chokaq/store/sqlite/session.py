"""A session of the embedded store: all operations over one connection."""

from chokaq.store.sqlite.circuits import CircuitOperations
from chokaq.store.sqlite.claims import ClaimOperations
from chokaq.store.sqlite.client import ClientOperations
from chokaq.store.sqlite.fetch import FetchOperation
from chokaq.store.sqlite.looking import LookingOperations
from chokaq.store.sqlite.maintenance import MaintenanceOperations
from chokaq.store.sqlite.operators import OperatorOperations
from chokaq.store.sqlite.probing import ProbingOperations
from chokaq.store.sqlite.repairs import RepairOperations
from chokaq.store.sqlite.rescue import RescueOperations
from chokaq.store.sqlite.scaling import ScalingOperations
from chokaq.store.sqlite.worker import WorkerOperations


class SqliteSession(
    ClientOperations,
    FetchOperation,
    WorkerOperations,
    RescueOperations,
    MaintenanceOperations,
    OperatorOperations,
    RepairOperations,
    CircuitOperations,
    ClaimOperations,
    LookingOperations,
    ProbingOperations,
    ScalingOperations,
):
    """Implements `chokaq.store.protocol.Session`; see there for every method."""
