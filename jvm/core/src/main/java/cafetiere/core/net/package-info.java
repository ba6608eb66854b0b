// SPDX-License-Identifier: Apache-2.0
/** Nets that run layer by layer and solvers that go step by step, on memory that Java sees. */
package cafetiere.core.net;
