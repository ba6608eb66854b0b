// SPDX-License-Identifier: Apache-2.0
/** Trained nets that score rows of floats. */
package cafetiere.core.score;
