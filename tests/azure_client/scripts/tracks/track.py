from pathlib import Path

import mlflow

mlflow.call("runs/log-parameter", key="hello_param", value="world")
mlflow.call("runs/log-metric", key="hello_metric", value=0.5)
mlflow.call("runs/set-tag", key="kind", value="greeting")
Path("helloworld.txt").write_text("hello world, tracked\n")
mlflow.log_artifact("helloworld.txt")
