"""The types of groups that are modelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.epochs.kinds import KINDS
from coordinator_model.groups.epochs.model import of_kind
from coordinator_model.groups.group_model import GroupModel

_MODELS: Final[dict[str, Callable[..., GroupModel[Any]]]] = {CLASSIC: ClassicGroupModel, **{kind: of_kind(kind) for kind in KINDS}}


def empty_group(kind: str, name: str, cluster: str, *, facts: ClusterFacts | None = None, **shared: Any) -> GroupModel[Any]:
    """Return a group of which nothing is known.

    :param facts: what is known of clusters.
    :param shared: what all groups of a partition share.
    """
    group = _MODELS[kind](name, cluster, **shared)
    if facts is not None:
        group.facts = facts
    return group
