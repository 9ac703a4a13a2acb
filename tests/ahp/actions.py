"""Actions as clients send them."""

from typing import Any

Action = dict[str, Any]


def title_changed(title: str) -> Action:
    return {"type": "session/titleChanged", "title": title}


def turn_started(turn_id: str = "t", text: str = "Go") -> Action:
    message = {"text": text, "origin": {"kind": "user"}}
    return {"type": "session/turnStarted", "turnId": turn_id, "message": message}


def turn_completed(turn_id: str = "t") -> Action:
    return {"type": "session/turnComplete", "turnId": turn_id}


def turn_cancelled(turn_id: str = "t") -> Action:
    return {"type": "session/turnCancelled", "turnId": turn_id}


def model_changed(model_id: str = "m") -> Action:
    return {"type": "session/modelChanged", "model": {"id": model_id}}


def active_client_changed(client_id: str | None, *tools: dict[str, Any]) -> Action:
    """`None`: there is none any more."""
    client = None if client_id is None else {"clientId": client_id, "tools": list(tools)}
    return {"type": "session/activeClientChanged", "activeClient": client}


def text_question(question_id: str = "q", **fields: Any) -> dict[str, Any]:
    return {"kind": "text", "id": question_id, "message": "What?", **fields}


def input_requested(request_id: str = "r", *questions: dict[str, Any], **fields: Any) -> Action:
    """Without questions it asks for a yes or no."""
    request = {"id": request_id, "message": "Go on?", **fields}
    if questions:
        request["questions"] = list(questions)
    return {"type": "session/inputRequested", "request": request}


def text_answer(text: str, state: str = "submitted") -> dict[str, Any]:
    return {"state": state, "value": {"kind": "text", "value": text}}


def answer_changed(
    text: str, request_id: str = "r", question_id: str = "q", state: str = "draft"
) -> Action:
    return {
        "type": "session/inputAnswerChanged",
        "requestId": request_id,
        "questionId": question_id,
        "answer": text_answer(text, state),
    }


def input_completed(
    request_id: str = "r", response: str = "accept", **answers: str | dict[str, Any]
) -> Action:
    """A text is a submitted answer."""
    action: Action = {
        "type": "session/inputCompleted",
        "requestId": request_id,
        "response": response,
    }
    if answers:
        action["answers"] = {
            question_id: text_answer(answer) if isinstance(answer, str) else answer
            for question_id, answer in answers.items()
        }
    return action
