"""Bodies and answers as the OpenAPI document shows them, and as FastAPI checks them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from service.learner import MAX_MAGNITUDE
from service.learner.config import MAX_DIMENSION, Missingness, PolicyName, Preset

NAME_PATTERN = "^[a-z0-9][a-z0-9_-]{0,62}$"
LIMIT = 1e100

Number = Annotated[float, Field(ge=-MAX_MAGNITUDE, le=MAX_MAGNITUDE)]
Id = Annotated[str, Field(min_length=1, max_length=128)]
LearnerName = Annotated[str, Field(pattern=NAME_PATTERN)]

ARMS_EXAMPLE: JsonValue = [
    {"id": "ad-17", "features": [0.2, None, 1.3]},
    {"id": "ad-4", "features": [0.1, 0.7, 0.0], "mask": [1, 0, 1]},
]
SELECT_EXAMPLE: JsonValue = {"learner": "default", "event_id": "imp-8f2c", "arms": ARMS_EXAMPLE}
REWARD_EXAMPLE: JsonValue = {"learner": "default", "event_id": "imp-8f2c", "reward": 1.0}


class Strict(BaseModel):
    """Takes what is declared, as it is declared: `"3"` and `true` are no numbers."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Arm(Strict):
    features: (
        Annotated[list[Number | None], Field(min_length=1, max_length=MAX_DIMENSION)]
        | dict[str, Number | None]
    ) = Field(description="Numbers by position, or by name where the learner has feature names; "
              "null, or a name left out, is missing.")  # fmt: skip
    id: Id | None = Field(None, description="Left out: the arm's position, as text.")
    mask: list[Literal[0, 1]] | None = Field(
        None, description="1 observed, 0 missing: then the value is ignored."
    )


class SelectRequest(Strict):
    model_config = ConfigDict(json_schema_extra={"examples": [SELECT_EXAMPLE]})

    arms: list[Arm] = Field(min_length=1)
    learner: LearnerName = Field("default", description="Made on first use.")
    event_id: Id | None = Field(
        None, description="Left out: the server makes one. The same id again: the same answer."
    )
    explain: bool = Field(False, description="Say what each arm was worth.")
    dry_run: bool = Field(False, description="Choose and explain, but count and store nothing.")


class ArmWorth(BaseModel):
    id: str
    score: float | None = Field(description="mean + bonus")
    mean: float | None
    bonus: float | None
    observed: list[Literal[0, 1]]
    features: list[float | None] = Field(description="Completed where they were missing.")


class SelectAnswer(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "event_id": "imp-8f2c",
                    "learner": "default",
                    "arm": "ad-17",
                    "index": 0,
                    "round": 812,
                    "probability": 1.0,
                    "model_version": 790,
                    "degraded": False,
                }
            ]
        }
    )

    event_id: str | None = Field(description="null in a dry run")
    learner: str
    arm: str
    index: int
    round: int = Field(description="This learner's selects so far, this one included.")
    probability: float = Field(description="Of the chosen arm.")
    model_version: int = Field(description="Rewards in the model that chose.")
    degraded: bool = Field(description="True where the store was away.")
    arms: list[ArmWorth] | None = Field(None, description="With explain or dry_run.")


class RewardRequest(Strict):
    model_config = ConfigDict(json_schema_extra={"examples": [REWARD_EXAMPLE]})

    event_id: Id
    reward: Number
    learner: LearnerName = "default"


class RewardAnswer(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"event_id": "imp-8f2c", "status": "recorded"}]}
    )

    event_id: str
    status: Literal["recorded", "duplicate", "late"]
    reward: float | None = Field(None, description="The one that stands, where this one does not.")


class FieldError(BaseModel):
    loc: str
    msg: str


class Problem(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:lacuna:problem:bad-request",
                    "title": "The request cannot be used",
                    "status": 422,
                    "detail": "arms[1].features: must be 3 as in the first arm, not 2",
                    "errors": [
                        {
                            "loc": "arms[1].features",
                            "msg": "must be 3 as in the first arm, not 2",
                        }
                    ],
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldError] | None = Field(None, description="For bad input: which field, why.")


class ItemError(BaseModel):
    error: Problem


class SelectBatch(Strict):
    # An item may be anything: a bad one gets its own error.
    requests: list[SelectRequest | Any] = Field(examples=[[SELECT_EXAMPLE]])


class SelectBatchAnswer(BaseModel):
    results: list[SelectAnswer | ItemError]


class RewardBatch(Strict):
    rewards: list[RewardRequest | Any] = Field(examples=[[REWARD_EXAMPLE]])


class RewardBatchAnswer(BaseModel):
    results: list[RewardAnswer | ItemError]


class Constants(Strict):
    """The paper's C₂, C₄, C₅, C₆."""

    c2: float = Field(1.0, ge=0, le=LIMIT)
    c4: float = Field(1.0, ge=0, le=LIMIT)
    c5: float = Field(1.0, ge=0, le=LIMIT)
    c6: float = Field(1.0, ge=0, le=LIMIT)


class Configuration(Strict):
    """All optional, but one of `dimension` and `features` must be there."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"dimension": 32}, {"features": ["age", "price"]}]}
    )

    dimension: int | None = Field(None, ge=1, le=MAX_DIMENSION)
    features: list[Id] | None = Field(
        None, min_length=1, max_length=MAX_DIMENSION, description="Names, in order."
    )
    policy: PolicyName = "clbbf"
    preset: Preset = "practical"
    missingness: Missingness = "per_feature"
    horizon: int | None = Field(None, ge=1, le=2**53, description="T; null: the doubling trick")
    constants: Constants | None = Field(None, description="Preset `paper` only.")
    ridge: float | None = Field(None, ge=1e-9, le=LIMIT, description="λ; null: the preset's")
    width: float | None = Field(None, ge=0, le=LIMIT, description="of β; null: the preset's")
    alpha: float = Field(0.5, ge=1e-3, le=1, description="Algorithm 2's lower bound on p")
    active_set: float | None = Field(None, ge=1e-9, le=LIMIT, description="c; null: all arms")
    epsilon: float = Field(0.0, ge=0, le=1, description="share of uniform choices")
    seed: int | None = Field(None, ge=0, le=2**64 - 1)
    reward_wait_s: float | None = Field(
        None, ge=0, le=366 * 86_400, description="Then `default_reward` is booked."
    )
    default_reward: Number | None = None
    decision_ttl_s: float = Field(86_400, ge=1e-3, le=366 * 86_400)
    history_limit: int = Field(131_072, ge=0, le=2**31, description="rows a refresh completes anew")

    def given(self) -> dict[str, Any]:
        """Only what the caller has said."""
        return self.model_dump(exclude_unset=True)


class Learner(BaseModel):
    """A learner's configuration, every default spelt out."""

    name: str
    dimension: int
    features: list[str] | None
    policy: PolicyName
    preset: Preset
    missingness: Missingness
    horizon: int | None
    constants: Constants
    ridge: float | None
    width: float | None
    alpha: float
    active_set: float | None
    epsilon: float
    seed: int
    reward_wait_s: float | None
    default_reward: float | None
    decision_ttl_s: float
    history_limit: int


class LearnerStatistics(Learner):
    """Configuration and statistics: those of all workers together."""

    rounds: int
    rewards: int
    pending: int = Field(description="Decisions whose reward may still come.")
    mean_reward: float | None
    arms: int = Field(description="All arms seen, chosen or not: N")
    observed_rate: list[float] = Field(description="Per feature.")
    p_hat: float | None
    defaults: int
    duplicates: int
    late: int
    bytes_held: int = Field(description="By the store.")
    workers: int
    staleness_s: float
    degraded: bool


class Named(BaseModel):
    name: str


class LearnerList(BaseModel):
    learners: list[Named]


class Counts(BaseModel):
    rounds: int
    arms: int
    rewards: int
    history_rows: int
    next_refresh: int | None


class Model(BaseModel):
    """The estimate and the model; `theta` and `gram` have the intercept first."""

    nu: list[float] | None
    sigma: list[list[float]] | None
    p_hat: float | None
    theta: list[float]
    uncertainty: list[float] = Field(description="of each theta: √(V⁻¹)ⱼⱼ")
    gram: list[list[float]] | None
    ridge: float
    counts: Counts


class Decision(BaseModel):
    event_id: str
    arm: str
    index: int
    arms: int
    round: int
    probability: float
    model_version: int
    degraded: bool
    reward: float | None
    status: Literal["pending", "rewarded", "defaulted"]
    explained: bool = Field(description="What its arms were worth can be asked for.")


class Decisions(BaseModel):
    decisions: list[Decision]


class ExplainedDecision(BaseModel):
    decision: Decision
    arms: list[ArmWorth] | None


class Interval(BaseModel):
    at: float = Field(description="Its begin, seconds since 1970.")
    selects: int
    rewards: int = Field(description="That went into the model.")
    sum: float = Field(description="Of those rewards.")
    sum_squares: float


class Timeline(BaseModel):
    """Sums, so that intervals can be added; the last may not be over yet."""

    interval_s: float
    points: list[Interval]


class Health(BaseModel):
    status: Literal["ok", "ready"]
