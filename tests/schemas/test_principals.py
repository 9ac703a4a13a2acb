"""Who acts, as others see it."""

from session_server.schemas.principals import Author, Principal, Role


def test_an_author_is_called_by_name_and_else_by_id() -> None:
    assert str(Author(id="u-1", name="Ana")) == "Ana"
    assert str(Author(id="u-1")) == "u-1"
    assert str(Author(id="u-1", name="")) == "u-1"


def test_others_see_no_more_of_a_principal_than_id_and_name() -> None:
    principal = Principal(id="u-1", role=Role.OWNER, name="Ana", client_id="laptop")
    assert principal.author == Author(id="u-1", name="Ana")


def test_a_principal_reaches_all_sessions_or_those_it_is_limited_to() -> None:
    free = Principal(id="u-1", role=Role.OWNER)
    bound = Principal(id="u-2", role=Role.OWNER, sessions=("x:1",))
    assert (free.is_limited, free.reaches("x:1"), free.reaches("x:2")) == (False, True, True)
    assert (bound.is_limited, bound.reaches("x:1"), bound.reaches("x:2")) == (True, True, False)
