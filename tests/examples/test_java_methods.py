"""Names of methods in Java sources: what is a declaration, and what only looks like one."""

import pytest

from examples.example_files import load_example

method_names = load_example("java_methods").method_names

SOURCE = r'''
package depot.goods;

/** A crate; void notThis() { } */
@SuppressWarnings({"unchecked", "raw"})
public abstract class Crate<T extends Comparable<T>> implements Iterable<T> {
    private static final String HELP = "void norThis() {";
    private static final String LONG = """
        int norThat() { "quoted" \""" }
        """;
    private final char brace = '{', quote = '\'', mark = '"';

    public Crate(int size) { super(); this.size = size; }
    @Deprecated Crate() { this(1); }
    <K> Crate(K key) { }

    @Override public String toString() { return describe(size); }
    public static <K, V extends List<? super K>> Map<K, List<V>> groupBy(Collection<K> keys)
            throws IOException, depot.Lost {
        // int commentedOut() { }
        if (keys.isEmpty()) { return emptyMap(); } else throw new Lost(keys);
        for (K key : keys) { sort(key); }
        while (next()) { do step(); while (more()); }
        switch (size) { case 1: open(); default: yield close(); }
        synchronized (this) { assert valid(size); }
        Runnable task = new Runnable() { public void run() { load(); } };
        Inner made = outer.new Inner(3);
        Object other = keys instanceof Pair(int a, int b) ? first(a) : second(b);
        return new java.util.HashMap<K, List<V>>(10) { };
    }
    protected abstract int[] weights_of(@Named("a, (b)") final double[]... loads);
    native long size$1();
    int matrix()[] { return null; }
    java.util.Map.Entry<String, int[]>[] entries(){ return null; }
    List<String>items() { return null; }
    void größe() { }
    record Label(String text, int size) { boolean isBlank() { return text.isBlank(); } }
    enum Side { LEFT(1), RIGHT(2) { int sign() { return -1; } }; Side(int n) { }
        abstract int sign(); }
    @interface Checked { int value() default 3; Class<?>[] groups() default {}; }
    interface Shape { default void draw() { paint(); } }
}
'''
NAMES = [
    "toString", "groupBy", "run", "weights_of", "size$1", "matrix", "entries", "items", "größe",
    "isBlank", "sign", "sign", "value", "groups", "draw",
]  # fmt: skip


def test_declarations_and_nothing_else() -> None:
    assert method_names(SOURCE) == NAMES


@pytest.mark.parametrize(
    "source", ["", "class A { }", "/* never closed", '"', "void f(", "((((", "a<b<c<d", "'" * 999]
)
def test_what_is_no_whole_source_has_no_names(source: str) -> None:
    assert method_names(source) == []


def test_a_long_source_does_not_take_for_ever() -> None:
    assert method_names("x<" * 20_000 + "(" * 20_000 + "a.b." * 20_000) == []
    assert method_names("void f(int x) { }\n" * 20_000) == ["f"] * 20_000
