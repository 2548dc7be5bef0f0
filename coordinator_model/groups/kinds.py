"""The types of groups that are modelled."""

from __future__ import annotations

from typing import Any

from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.group import GroupModel


def empty_group(kind: str, name: str, cluster: str, **shared: Any) -> GroupModel[Any]:
    """Return a group of which nothing is known.

    :param shared: what all groups of a partition share.
    """
    group: GroupModel[Any] = ClassicGroupModel() if kind == CLASSIC else EpochGroup(kind=kind)
    return group.attach(name, cluster, **shared)
