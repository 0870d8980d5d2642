// OpenSSL 3's libcrypto as CofferSealing uses it. Nothing is wrapped here: what Swift cannot call
// (macros with arguments) has a function of the same meaning in OpenSSL 3.
#ifndef COFFER_COPENSSL_SHIM_H
#define COFFER_COPENSSL_SHIM_H

#if !__has_include(<openssl/core_names.h>)
#error "The headers of OpenSSL 3 are missing: install libssl-dev (apt) or openssl@3 (brew)"
#endif
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#endif
