"""Who acts, as others see it."""

from session_server.schemas.principals import Author, Principal, Role


def test_an_author_is_called_by_name_and_else_by_id() -> None:
    assert str(Author(id="u-1", name="Ana")) == "Ana"
    assert str(Author(id="u-1")) == "u-1"
    assert str(Author(id="u-1", name="")) == "u-1"


def test_others_see_no_more_of_a_principal_than_id_and_name() -> None:
    principal = Principal(id="u-1", role=Role.OWNER, name="Ana", client_id="laptop")
    assert principal.author == Author(id="u-1", name="Ana")
