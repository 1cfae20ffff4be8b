"""Written by tools/write_stubs.py."""

from typing import Any

from . import learners as learners, stores as stores
from ._metra import (
    DataError as DataError,
    DivergedError as DivergedError,
    InternalError as InternalError,
    MetraError as MetraError,
    Model as Model,
    ModelFileError as ModelFileError,
    ParameterError as ParameterError,
    Plan as Plan,
    PlanError as PlanError,
    SupervisionError as SupervisionError,
    __version__ as __version__,
    methods as methods,
)
from .checks import (
    DataCheck as DataCheck,
    check as check,
)
from .client import (
    Client as Client,
    Hit as Hit,
    ServerError as ServerError,
)
from .comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .compression import (
    Compression as Compression,
    compress as compress,
)
from .evaluation import (
    Evaluation as Evaluation,
    Verification as Verification,
    agreement as agreement,
    bootstrap as bootstrap,
    evaluate as evaluate,
    verification as verification,
)
from .exports import (
    export as export,
)
from .labels import (
    Clicks as Clicks,
    LabelBudget as LabelBudget,
    budget as budget,
    clicks as clicks,
)
from .plots import (
    plot_cmc as plot_cmc,
    plot_det as plot_det,
    plot_embedding as plot_embedding,
    plot_gains as plot_gains,
    plot_history as plot_history,
    plot_neighbours as plot_neighbours,
    plot_precision as plot_precision,
    plot_roc as plot_roc,
)
from .release import (
    Gate as Gate,
    gate as gate,
)
from .learners import (
    Adapter as Adapter,
    Attributes as Attributes,
    Cca as Cca,
    Cosine as Cosine,
    Euclid as Euclid,
    Frml as Frml,
    Itml as Itml,
    KernelLfda as KernelLfda,
    KernelPcca as KernelPcca,
    KernelWarca as KernelWarca,
    Kissme as Kissme,
    Lda as Lda,
    Lfda as Lfda,
    Lmnn as Lmnn,
    Loreta as Loreta,
    MetricLearner as MetricLearner,
    Mfa as Mfa,
    Mlapg as Mlapg,
    Mlr as Mlr,
    MultiSimilarity as MultiSimilarity,
    Nca as Nca,
    Oasis as Oasis,
    Pca as Pca,
    Pcca as Pcca,
    Procrustes as Procrustes,
    ProxyAnchor as ProxyAnchor,
    Qwise as Qwise,
    RankSvm as RankSvm,
    Slr as Slr,
    SlrAdapter as SlrAdapter,
    SupCon as SupCon,
    Svmml as Svmml,
    VectorWeights as VectorWeights,
    Warca as Warca,
    Whitening as Whitening,
    Xqda as Xqda,
    from_model as from_model,
)

def load(path: Any) -> Model: ...
def plan(
    model: Any,
    distances: Any = ...,
    keep_items: bool = False,
    most_dimensions: int | None = None,
    way: str | None = None,
) -> Plan: ...
