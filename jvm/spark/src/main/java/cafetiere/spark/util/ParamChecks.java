// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import scala.Function1;

/** What params may be set to. Unlike Spark's ParamValidators these say what to set instead. */
public final class ParamChecks {
  /** The words of a param, asked for when it is set. */
  public interface Words extends Supplier<List<String>>, Serializable {}

  private ParamChecks() {}

  /** Whole numbers from {@code least} on. */
  public static Function1<Object, Object> atLeast(String param, long least) {
    return (Function1<Object, Object> & Serializable) value -> {
      if (((Number) value).longValue() >= least) return true;
      throw new IllegalArgumentException(
          param + " is " + value + ": set it to " + least + " or more");
    };
  }

  /** An {@code int[]} or a {@code double[]} of numbers from {@code least} on. */
  public static <T> Function1<T, Object> eachAtLeast(String param, int least) {
    return (Function1<T, Object> & Serializable) values -> {
      requireGiven(param, values);
      Stream<? extends Number> numbers = numbers(param, values);
      numbers.filter(number -> !(number.doubleValue() >= least)).findFirst().ifPresent(number -> {
        throw new IllegalArgumentException(
            param + " has " + number + ": set each to " + least + " or more");
      });
      return true;
    };
  }

  private static Stream<? extends Number> numbers(String param, Object values) {
    if (values instanceof int[] whole) return Arrays.stream(whole).boxed();
    if (values instanceof double[] numbers) return Arrays.stream(numbers).boxed();
    throw new IllegalArgumentException(param + " is a " + values.getClass().getSimpleName()
        + ": set it to an array of int or double");
  }

  /** Anything but null, which getters would hand on. */
  public static <T> Function1<T, Object> given(String param) {
    return (Function1<T, Object> & Serializable) value -> {
      requireGiven(param, value);
      return true;
    };
  }

  private static void requireGiven(String param, Object value) {
    if (value != null) return;
    throw new IllegalArgumentException(
        param + " is null: set it to a value, or clear it to have its default");
  }

  /** Numbers from {@code least} to {@code most}. */
  public static Function1<Object, Object> between(String param, double least, double most) {
    return (Function1<Object, Object> & Serializable) value -> {
      double number = ((Number) value).doubleValue();
      if (number >= least && number <= most) return true;
      throw new IllegalArgumentException(
          param + " is " + value + ": set it to a number from " + least + " to " + most);
    };
  }

  /** One of some words; any where there are none. */
  public static Function1<String, Object> oneOf(String param, Words known) {
    return (Function1<String, Object> & Serializable) value -> {
      requireGiven(param, value);
      List<String> words = known.get();
      if (words.isEmpty() || words.contains(value)) return true;
      String hint = NearestName.of(value, words)
          .map(nearest -> " (did you mean \"" + nearest + "\"?)").orElse("");
      throw new IllegalArgumentException(param + " is \"" + value + "\"" + hint
          + ": set it to one of \"" + String.join("\", \"", words) + "\"");
    };
  }
}
