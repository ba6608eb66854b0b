// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.Tag;

/** Marks tests that take so long that only {@code ./test --full} runs them, in its part jvmlong. */
@Tag("long-run")
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface LongRun {}
