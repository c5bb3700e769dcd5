"""What the files beside the log of a run say of it: the certificate and the checkpoints.

They are read before the log: what they speak of is in it then, also where a process is writing to the run.
"""

from dataclasses import dataclass
from typing import Any

from gosprl.runs.certificate import CERTIFICATE
from gosprl.runs.files import Damaged, read_json
from gosprl.runs.looking import Saved, checkpoints
from gosprl.runs.places import Place, is_there


@dataclass(frozen=True)
class Beside:
    """What stands beside a log.

    Attributes
    ----------
    certificate
        The certificate; None if there is none that can be read.
    wrong
        Why a certificate that is there cannot be read; None if it can, or there is none.
    checkpoints
        Those found, also damaged ones.
    """

    certificate: dict[str, Any] | None
    wrong: Damaged | None
    checkpoints: tuple[Saved, ...]

    @classmethod
    def read(cls, directory: Place, run_id: str) -> "Beside":
        """Read what is beside the log of a run."""
        certificate, wrong = None, None
        try:
            if is_there(directory / CERTIFICATE):
                certificate = read_json(directory / CERTIFICATE, root=directory)
        except Damaged as error:
            wrong = error
        except OSError as error:
            wrong = Damaged(CERTIFICATE, None, f"cannot be read: {error.strerror}")
        return cls(certificate, wrong, tuple(checkpoints(directory, run_id)))
