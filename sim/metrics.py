"""Metrics in words: their names and figures as people write them, wherever a figure is shown."""

__all__ = ["shown", "words"]

PARTS = ("accuracy", "f1", "phone_error_rate")
"""Metrics that are a part of all samples, labels or symbols; written in percent."""

SYMBOLS = {"r2": "R²", "f1": "F1", "rmse": "RMSE", "mse": "MSE", "mae": "MAE"}


def words(metric: str) -> str:
    """The name of a metric for people."""
    return SYMBOLS.get(metric, metric.replace("_", " "))


def shown(metric: str, value: float, digits: int = 2) -> str:
    """A figure of a metric: in percent with so many digits where it is a part, else with four significant ones."""
    return f"{value:.{digits}%}" if metric in PARTS else f"{value:.4g}"
