"""Constants of Azure ML's v2 SDK, by the names under which its samples import them."""

from __future__ import annotations

from typing import Final


class AssetTypes:
    """The types of inputs, outputs and models, as `azure.ai.ml.constants.AssetTypes` has them."""

    URI_FILE: Final = "uri_file"
    URI_FOLDER: Final = "uri_folder"
    MLTABLE: Final = "mltable"
    MLFLOW_MODEL: Final = "mlflow_model"
    CUSTOM_MODEL: Final = "custom_model"
    TRITON_MODEL: Final = "triton_model"


class InputOutputModes:
    """The ways in which data get to a job, as `azure.ai.ml.constants.InputOutputModes` has them."""

    RO_MOUNT: Final = "ro_mount"
    RW_MOUNT: Final = "rw_mount"
    MOUNT: Final = "mount"
    DOWNLOAD: Final = "download"
    UPLOAD: Final = "upload"
    DIRECT: Final = "direct"
    EVAL_MOUNT: Final = "eval_mount"
    EVAL_DOWNLOAD: Final = "eval_download"
