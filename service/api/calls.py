"""`/select` and `/reward`, from a body to the JSON of the answer."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from service.engine.configuration import Configuration
from service.engine.engine import Engine, Selected
from service.engine.registry import Engines, check_name
from service.errors import BadRequest, UnknownLearner
from service.learner import Arms, BadInput, Choices, Learner, LearnerConfig
from service.learner.regression import check_reward

from . import problems
from .bodies import Reader, RewardBody, SelectRequest
from .metrics import Metrics


class ArmAnswer(msgspec.Struct, gc=False):
    id: str
    score: float
    mean: float
    bonus: float
    observed: list[int]
    features: list[float]


class SelectAnswer(msgspec.Struct, gc=False):
    event_id: str | None
    learner: str
    arm: str
    index: int
    round: int
    probability: float
    model_version: int
    degraded: bool
    arms: list[ArmAnswer] | UnsetType = UNSET


class RewardAnswer(msgspec.Struct, gc=False):
    event_id: str
    status: str
    reward: float | UnsetType = UNSET


class ErrorAnswer(msgspec.Struct):
    error: problems.Problem


class Calls:
    def __init__(self, engines: Engines, reader: Reader, metrics: Metrics) -> None:
        self.engines = engines
        self.reader = reader
        self.metrics = metrics

    async def select(self, request: SelectRequest) -> SelectAnswer:
        if request.dry_run:
            return await self._dry_run(request)

        async def work(engine: Engine) -> SelectAnswer:
            arms = await self._arms(request, engine)
            selected = await engine.select(arms, request.arm_ids, request.event_id, request.explain)
            told = selected.answer
            self.metrics.selected(request.learner, told.degraded)
            answer = SelectAnswer(
                selected.event_id,
                request.learner,
                told.arm,
                told.index,
                told.round,
                told.probability,
                told.model_version,
                told.degraded,
            )
            if request.explain:
                answer.arms = _explained(engine, selected, arms, request.arm_ids)
            return answer

        dimension = None if request.arms is None else request.arms.observed.shape[1]
        return await self.engines.use(request.learner, work, dimension)

    async def reward(self, body: RewardBody) -> RewardAnswer:
        try:
            value = check_reward(body.reward)
        except BadInput as error:
            raise BadRequest(error.field, error.problem) from None

        async def work(engine: Engine) -> tuple[str, float]:
            return await engine.reward(body.event_id, value)

        status, stands = await self.engines.use(body.learner, work)
        self.metrics.rewarded(body.learner, status)
        return RewardAnswer(body.event_id, status, UNSET if status == "recorded" else stands)

    async def _dry_run(self, request: SelectRequest) -> SelectAnswer:
        async def work(engine: Engine) -> SelectAnswer:
            arms = await self._arms(request, engine)
            return _previewed(request, engine.preview(arms), engine.degraded)

        try:
            return await self.engines.use(request.learner, work)
        except UnknownLearner:
            if request.arms is None or not self.engines.auto_create:
                raise
        check_name(request.learner)
        # What its first round would be like; it is not made for that.
        learner = Learner(LearnerConfig(dimension=request.arms.observed.shape[1]))
        return _previewed(request, learner.preview(request.arms), degraded=False)

    async def _arms(self, request: SelectRequest, engine: Engine) -> Arms:
        """The arms, known to fit this learner."""
        configuration = engine.replica.configuration
        try:
            return self._fitting(request, configuration)
        except BadRequest:
            # Another worker may have reconfigured it: an outdated engine refuses here.
            await engine.run(engine.committing.follow)
            await engine.run(_nothing)
            raise

    def _fitting(self, request: SelectRequest, configuration: Configuration) -> Arms:
        arms = request.arms
        if arms is None:
            assert request.named is not None
            if configuration.features is None:
                raise BadRequest("arms[0].features", "must be a list: the learner has no names")
            arms = self.reader.named_arms(request.named, configuration.features)
        given, wanted = arms.observed.shape[1], configuration.learner.dimension
        if given != wanted:
            raise BadRequest("arms[0].features", f"must be {wanted} numbers, not {given}")
        return arms


async def _nothing() -> None:
    pass


def _previewed(request: SelectRequest, choices: Choices, degraded: bool) -> SelectAnswer:
    return SelectAnswer(
        None,
        request.learner,
        request.arm_ids[choices.index[0]],
        choices.index[0],
        choices.rounds[0].number,
        choices.probability[0],
        choices.model_version,
        degraded,
        _worth(choices, 0, request.arm_ids),
    )


def _explained(
    engine: Engine, selected: Selected, arms: Arms, arm_ids: list[str]
) -> list[ArmAnswer]:
    if selected.choices is None:
        # Answered before, and only the answer was kept: what the arms are worth today.
        return _worth(engine.preview(arms), 0, arm_ids)
    return _worth(selected.choices, selected.request, arm_ids)


def _worth(choices: Choices, request: int, arm_ids: list[str]) -> list[ArmAnswer]:
    start = choices.arms.starts[request]
    return [
        ArmAnswer(
            arm_id,
            float(choices.mean[row] + choices.bonus[row]),
            float(choices.mean[row]),
            float(choices.bonus[row]),
            choices.arms.observed[row].astype(int).tolist(),
            choices.z[row, 1:].tolist(),
        )
        for row, arm_id in enumerate(arm_ids, start)
    ]
