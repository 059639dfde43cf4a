"""The shape of a text's choices: the same whole and streamed.

A repeated prompt is the first chunk of its choices.  With log-probabilities it waits, and what follows it too, until
those of the whole prompt have come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from twostroke.serve.answer import Choice
from twostroke.serve.openai.logprobs import joined, length, of_echo, of_text
from twostroke.serve.openai.writer import AnswerWriter
from twostroke.serve.service import Service
from twostroke.serve.submission import Json, Submission
from twostroke.text.pieces import Piece, Words
from twostroke.types import Event, Logprobs


class CompletionWriter(AnswerWriter):
    """Writes `/v1/completions`."""

    body_object = chunk_object = "text_completion"

    def __init__(self, submission: Submission, service: Service) -> None:
        super().__init__(submission, service)
        self._scored = self.details.logprobs and bool(self.details.echo)
        self._held: dict[int, list[bytes]] = {choice.index: [] for choice in self.choices} if self._scored else {}
        self._at: dict[int, int] = {}  # characters of the tokens whose log-probabilities are written, by choice

    def opening(self, choice: Choice) -> Iterator[Json]:
        if self.details.token_ids or (self.details.echo and not self._scored):
            ids = {"prompt_token_ids": list(choice.request.prompt)} if self.details.token_ids else {}
            yield self.body(choice, {"text": "" if self._scored else self._echo(choice)}) | ids

    def take(self, place: int, event: Event) -> Iterable[bytes]:
        chunks = list(super().take(place, event))
        choice = self.choices[place * self.submission.choices + event.choice]
        if choice.index not in self._held:
            return chunks
        self._held[choice.index] += chunks
        if choice.done is None and len(self.scores(choice)) < len(choice.request.prompt) - 1:
            return ()
        echo = self.chunk(self.body(choice, {"text": self._echo(choice)}, self._echoed(choice)))
        return [echo, *self._held.pop(choice.index)]

    def parts(self, choice: Choice, pieces: Sequence[Piece]) -> Sequence[Json]:
        text = "".join(piece.text for piece in pieces if isinstance(piece, Words))
        return [{"text": text}] if text else []

    def nothing(self) -> Json:
        return {"text": ""}

    def message(self, choice: Choice) -> Json:
        ids = {"prompt_token_ids": list(choice.request.prompt)} if self.details.token_ids else {}
        return {"text": self._echo(choice) + choice.words} | ids | self.prompt_logprobs(choice)

    def logprobs(self, choice: Choice, entries: Sequence[Logprobs]) -> Json | None:
        if not entries:
            return None
        at = self._at.get(choice.index)
        if at is None:
            at = length(self._echoed(choice)) if self._scored else 0
        found = of_text(entries, self.text, at=at)
        self._at[choice.index] = at + length(found)
        return found

    def all_logprobs(self, choice: Choice) -> Json | None:
        if not self.details.logprobs:
            return None
        echoed = [self._echoed(choice)] if self._scored else []
        at = sum(map(length, echoed))
        return joined([*echoed, of_text(choice.logprobs, self.text, at=at)])

    def _echo(self, choice: Choice) -> str:
        return self.details.echo[choice.place] if self.details.echo else ""

    def _echoed(self, choice: Choice) -> Json:
        top = choice.request.sampling.logprobs or 0
        return of_echo(choice.request.prompt, self.scores(choice), top, self.text)
