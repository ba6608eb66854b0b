// SPDX-License-Identifier: Apache-2.0
/** What com.yahoo.ml.jcaffe is made of beside its own classes; no interface. */
package cafetiere.jcaffe;
